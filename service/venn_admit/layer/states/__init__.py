"""Token states of documents in folders of shards: the format, its writer and its reader."""
