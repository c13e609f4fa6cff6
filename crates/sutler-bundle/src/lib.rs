//! Bundles: a service offered without writing a broker, by a manifest and scripts or an image.
