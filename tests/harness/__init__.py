"""What tests are run with: real kernels and pages, providers and servers on loopback, tapes and bundles made by hand."""
