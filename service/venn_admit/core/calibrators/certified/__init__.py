"""The certified promise (docs/PROCEDURE.md, section 9): policies proposed on `mc`, tested on `vp`."""
