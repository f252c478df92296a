"""Work on clusters of Dask and Ray; `make test-clusters` installs them."""
