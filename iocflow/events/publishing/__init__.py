"""Publishers: where outgoing events go, each by its scheme; sources of the same schemes read them."""
