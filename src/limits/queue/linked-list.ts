export interface ListNode<T> {
  readonly value: T
  next: ListNode<T> | null
  previous: ListNode<T> | null
}

/** A list from which any node can be removed in constant time. */
export class LinkedList<T> {
  first: ListNode<T> | null = null
  last: ListNode<T> | null = null
  size = 0

  push(value: T): ListNode<T> {
    const node = { value, next: null, previous: this.last }
    if (this.last === null) this.first = node
    else this.last.next = node
    this.last = node
    this.size++
    return node
  }

  /** @param node a node of this list */
  remove(node: ListNode<T>): void {
    if (node.previous === null) this.first = node.next
    else node.previous.next = node.next
    if (node.next === null) this.last = node.previous
    else node.next.previous = node.previous
    this.size--
  }
}
