import { Kbd, Modal } from '@mantine/core'
import { useEffect, useRef } from 'react'
import { useLocation } from 'wouter'
import { navigationItemsFor } from '../places.ts'
import { useUser } from '../session.ts'
import classes from './shortcuts.module.css'

/** How long after `g` its letter may come, in ms. */
const PATIENCE = 1500

/** Keys that work on every page, unless one is writing somewhere. */
export function useShortcuts(search: () => void, help: () => void): void {
  const [, navigate] = useLocation()
  const { role } = useUser()
  const goneAt = useRef(-Infinity)
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (
        event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isWriting(event.target)
      ) return
      const isAfterG = event.timeStamp - goneAt.current < PATIENCE
      goneAt.current = -Infinity
      const place = isAfterG ? navigationItemsFor(role).find(({ letter }) => letter === event.key) : undefined
      if (place) navigate(place.path)
      else if (event.key === 'g') goneAt.current = event.timeStamp
      else if (event.key === '/') search()
      else if (event.key === '?') help()
      else return
      event.preventDefault()
    }
    document.addEventListener('keydown', listen)
    return () => { document.removeEventListener('keydown', listen) }
  }, [navigate, role, search, help])
}

/** In a field the keys are text; in a dialog or a menu they are its own. */
function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement
    && (target.isContentEditable || target.closest('input, textarea, select, ' +
      '[role="dialog"], [role="menu"]') !== null)
}

export function ShortcutList({ opened, close }: { readonly opened: boolean; readonly close: () => void }) {
  const { role } = useUser()
  return (
    <Modal opened={opened} onClose={close} title="Keyboard shortcuts" size="sm">
      <dl className={classes.list}>
        <div><dt><Kbd>/</Kbd></dt><dd>Find a request by its id</dd></div>
        <div><dt><Kbd>?</Kbd></dt><dd>This list</dd></div>
        <div>
          <dt><Kbd>↑</Kbd> <Kbd>↓</Kbd> <Kbd>Enter</Kbd></dt><dd>Go through the rows of a table, open one</dd>
        </div>
        {navigationItemsFor(role).map(({ path, title, letter }) => (
          <div key={path}><dt><Kbd>g</Kbd> <Kbd>{letter}</Kbd></dt><dd>{title}</dd></div>
        ))}
      </dl>
    </Modal>
  )
}
