"""Turns results into Rich renderables; nothing here prints."""
