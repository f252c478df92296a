"""Every option of every command changes the result, is refused, or is listed with a reason."""
