// Package model is what one Service has, or is to have, on a CLB, and the plan that leads from one to the other. It is pure data.
package model
