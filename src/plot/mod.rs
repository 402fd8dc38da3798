//! Pictures made from the files a run wrote.
