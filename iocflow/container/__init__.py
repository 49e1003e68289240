"""From a container file to a running application: read, check as a whole, then build."""
