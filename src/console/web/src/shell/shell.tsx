import { ActionIcon, Burger, Drawer } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { useCallback, useEffect, useRef, useState, type ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import type { Session } from '../api-hooks.ts'
import icon from '../icon.svg'
import { Navigation } from './navigation.tsx'
import { Search } from './search.tsx'
import { ShortcutList, useShortcuts } from './shortcuts.tsx'
import classes from './shell.module.css'

type Open = 'drawer' | 'search' | 'help' | null

/** The frame around every page: navigation, search and shortcuts. */
export function Shell({ session, children }: { readonly session: Session; readonly children: ReactNode }) {
  const [open, setOpen] = useState<Open>(null)
  const search = useCallback(() => { setOpen('search') }, [])
  const help = useCallback(() => { setOpen('help') }, [])
  const close = useCallback(() => { setOpen(null) }, [])
  const main = useFocusOnChange()
  useShortcuts(search, help)
  return (
    <>
      <a href="#main" className={classes.skip}>Skip to content</a>
      <div className={classes.shell}>
        <header className={classes.bar}>
          <Burger opened={open === 'drawer'} onClick={() => { setOpen('drawer') }} size="sm"
            aria-label="Pages" />
          <Brand />
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Find a request" onClick={search}>
            <IconSearch size={19} stroke={1.6} />
          </ActionIcon>
        </header>
        <aside className={classes.side} aria-label="Console">
          <div className={classes.inner}>
            <Brand />
            <Navigation session={session} search={search} help={help} />
          </div>
        </aside>
        <main id="main" ref={main} tabIndex={-1} className={classes.main}>
          <div className={classes.content}>{children}</div>
        </main>
      </div>
      <Drawer opened={open === 'drawer'} onClose={close} size={290} title="Model Gateway"
        classNames={{ content: classes.panel, body: classes.body, title: classes.name }}>
        <div className={classes.drawer}>
          <Navigation session={session} search={search} help={help} onSelect={close} />
        </div>
      </Drawer>
      <Search opened={open === 'search'} close={close} />
      <ShortcutList opened={open === 'help'} close={close} />
    </>
  )
}

function Brand() {
  return (
    <Link href="/" className={classes.brand}>
      <img src={icon} alt="" width={26} height={26} />
      Model Gateway
    </Link>
  )
}

/**
 * Moves the focus to the page and scrolls to the top when the page changes. When the user goes back, the browser's scroll position stays.
 */
function useFocusOnChange() {
  const [path] = useLocation()
  const main = useRef<HTMLElement>(null)
  const previous = useRef(path)
  const returnedTo = useRef<string | null>(null)
  useEffect(() => {
    const onPopState = () => { returnedTo.current = window.location.pathname }
    // Capture the event, so that this handler runs before the router's handler.
    window.addEventListener('popstate', onPopState, { capture: true })
    return () => { window.removeEventListener('popstate', onPopState, { capture: true }) }
  }, [])
  useEffect(() => {
    if (previous.current === path) return
    previous.current = path
    if (returnedTo.current !== window.location.pathname) window.scrollTo(0, 0)
    returnedTo.current = null
    main.current?.focus({ preventScroll: true })
  }, [path])
  return main
}
