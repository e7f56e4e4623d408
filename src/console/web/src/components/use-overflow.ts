import { useCallback, useState } from 'react'

/**
 * Tells whether the content of an element is wider than the element. If so, the element must be focusable, so that the arrow keys can
 * scroll the content.
 */
export function useOverflow(): [
  overflows: boolean, ref: (element: HTMLElement | null) => (() => void) | undefined,
] {
  const [overflows, setOverflows] = useState(false)
  const ref = useCallback((element: HTMLElement | null) => {
    if (element === null) return undefined
    const observer = new ResizeObserver(() => { setOverflows(element.scrollWidth > element.clientWidth) })
    observer.observe(element)
    if (element.firstElementChild) observer.observe(element.firstElementChild)
    return () => { observer.disconnect() }
  }, [])
  return [overflows, ref]
}
