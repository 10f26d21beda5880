// Filled by its first file.
