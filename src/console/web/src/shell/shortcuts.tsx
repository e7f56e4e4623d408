import { Kbd } from '@mantine/core'
import { useEffect, useRef } from 'react'
import { useLocation } from 'wouter'
import { Dialog } from '../components/page/dialog.tsx'
import { navigationItemsFor } from '../navigation-items.ts'
import { useUser } from '../session.ts'
import classes from './shortcuts.module.css'

/** Maximum ms between `g` and the letter after it. */
const SEQUENCE_MS = 1500

const FIELDS = 'input, textarea, select, [role="dialog"], [role="menu"]'

/** Keyboard shortcuts for every page. They have no effect while the user types. */
export function useShortcuts(search: () => void, help: () => void): void {
  const [, navigate] = useLocation()
  const { role } = useUser()
  const gPressedAt = useRef(-Infinity)
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (
        event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)
      ) return
      const isAfterG = event.timeStamp - gPressedAt.current < SEQUENCE_MS
      gPressedAt.current = -Infinity
      const item = isAfterG ? navigationItemsFor(role).find(({ letter }) => letter === event.key) : undefined
      if (item) navigate(item.path)
      else if (event.key === 'g') gPressedAt.current = event.timeStamp
      else if (event.key === '/') search()
      else if (event.key === '?') help()
      else return
      event.preventDefault()
    }
    document.addEventListener('keydown', listen)
    return () => { document.removeEventListener('keydown', listen) }
  }, [navigate, role, search, help])
}

/** Tells whether the target handles keys itself: fields, dialogs and menus do. */
function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement
    && (target.isContentEditable || target.closest(FIELDS) !== null)
}

export function ShortcutList({ opened, close }: { readonly opened: boolean; readonly close: () => void }) {
  const { role } = useUser()
  return (
    <Dialog opened={opened} close={close} title="Keyboard shortcuts" size="sm">
      <dl className={classes.list}>
        <div><dt><Kbd>/</Kbd></dt><dd>Find a request by its ID</dd></div>
        <div><dt><Kbd>?</Kbd></dt><dd>Show this list</dd></div>
        <div>
          <dt><Kbd>↑</Kbd> <Kbd>↓</Kbd> <Kbd>Enter</Kbd></dt><dd>Move between table rows, open a row</dd>
        </div>
        {navigationItemsFor(role).map(({ path, title, letter }) => (
          <div key={path}><dt><Kbd>g</Kbd> <Kbd>{letter}</Kbd></dt><dd>{title}</dd></div>
        ))}
      </dl>
    </Dialog>
  )
}
