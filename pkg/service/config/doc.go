// Package config holds what the cloud config file and the flags say about load balancers, whatever the product.
package config
