"""What the readers of official files share."""

GZIP_MAGIC = b"\x1f\x8b"
REMEDY = "delete it and download it again"
