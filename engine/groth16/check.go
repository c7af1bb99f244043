package groth16

// OrderCheck says how the order of many points is checked: each on its own, or by rounds of random sums over 2^BucketBits
// buckets.
type OrderCheck struct {
	Exact      bool
	BucketBits int
	Rounds     int
}

// PointAt is the place of a point in an SRS.
type PointAt struct {
	Block Block
	Index int
	Known bool // there is one
}

// PointFaults is what a check of points finds.
type PointFaults struct {
	Encoding PointAt // the first point that is not canonical, finite and on the curve
	Order    PointAt // the first that is not of order r, as far as was looked
	Unnamed  bool    // a sum is not of order r though every point is: what was read has changed
}
