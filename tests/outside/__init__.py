"""Components as a package outside of ebmjax would have them."""
