package sched

// queue holds what waits, first to go first. Putting in, taking the first and taking out of the middle cost the logarithm of its length.
// The zero value is empty. It belongs to some mutex.
type queue[T any] struct {
	before func(a, b *item[T]) bool
	items  []*item[T] // a heap
}

// item is a place in a queue.
type item[T any] struct {
	value T
	at    int // in items; -1 where it is not in the queue
}

func newQueue[T any](before func(a, b T) bool) queue[T] {
	return queue[T]{before: func(a, b *item[T]) bool { return before(a.value, b.value) }}
}

func (q *queue[T]) len() int { return len(q.items) }

// first is what goes first; there must be one.
func (q *queue[T]) first() *item[T] { return q.items[0] }

// push puts a value in.
func (q *queue[T]) push(value T) *item[T] {
	i := &item[T]{value: value, at: len(q.items)}
	q.items = append(q.items, i)
	q.up(i.at)
	return i
}

// remove takes a place out; where it is not in the queue nothing happens.
func (q *queue[T]) remove(i *item[T]) {
	if i == nil || i.at < 0 {
		return
	}
	at, last := i.at, len(q.items)-1
	q.swap(at, last)
	q.items[last] = nil
	q.items = q.items[:last]
	i.at = -1
	if at < last {
		q.down(at)
		q.up(at)
	}
}

func (q *queue[T]) swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	q.items[i].at, q.items[j].at = i, j
}

func (q *queue[T]) up(i int) {
	for i > 0 && q.before(q.items[i], q.items[(i-1)/2]) {
		q.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (q *queue[T]) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q.items); child++ {
			if q.before(q.items[child], q.items[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		q.swap(i, least)
		i = least
	}
}
