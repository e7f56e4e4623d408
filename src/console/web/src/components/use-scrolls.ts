import { useCallback, useState } from 'react'

/**
 * Whether what is in an element is wider than it. Then, and only then, it is one to go
 * to with the keyboard, so that the arrow keys can move it.
 */
export function useScrolls(): [
  scrolls: boolean, ref: (element: HTMLElement | null) => (() => void) | undefined,
] {
  const [scrolls, setScrolls] = useState(false)
  const ref = useCallback((element: HTMLElement | null) => {
    if (element === null) return undefined
    const observer = new ResizeObserver(() => { setScrolls(element.scrollWidth > element.clientWidth) })
    observer.observe(element)
    if (element.firstElementChild) observer.observe(element.firstElementChild)
    return () => { observer.disconnect() }
  }, [])
  return [scrolls, ref]
}
