"""The memory layer: from token states, or from texts and an encoder, to exemplars."""
