"""Bytes on disk and over the wire: written whole or not at all, sealed, bounded."""
