//! Structure and trajectory files: pure codecs between bytes and frames.
