import { Modal, type ModalProps } from '@mantine/core'
import { useEffect, useLayoutEffect, useRef, type ReactNode } from 'react'
import classes from './dialog.module.css'

export interface DialogProps {
  readonly opened: boolean
  readonly close: () => void
  readonly title: ReactNode
  readonly size?: ModalProps['size']
  /** Whether Escape and a button close it. Default: true. */
  readonly dismissible?: boolean
  /** Whether a click beside it closes it. Default: as `dismissible`. */
  readonly closeOnClickOutside?: boolean
  readonly children: ReactNode
}

/** A modal dialog. It keeps the focus while it is open; then the control that opened it gets it back. */
export function Dialog(props: DialogProps) {
  const { opened, close, title, size = 'md', dismissible = true, closeOnClickOutside = dismissible, children } = props
  const body = useRef<HTMLDivElement>(null)
  useReturnedFocus(opened)
  useKeptFocus(opened, body)
  return (
    <Modal opened={opened} onClose={close} title={title} size={size} returnFocus={false}
      closeOnEscape={dismissible} withCloseButton={dismissible} closeOnClickOutside={closeOnClickOutside}>
      <div ref={body} tabIndex={-1} className={classes.body}>{children}</div>
    </Modal>
  )
}

/** Gives the focus back when a dialog closes; to the page if the control no longer exists, as after its row was removed. */
function useReturnedFocus(opened: boolean): void {
  const lastFocused = useRef<Element | null>(null)
  useEffect(() => {
    if (opened) return undefined
    const remember = ({ target }: FocusEvent) => { lastFocused.current = target as Element }
    document.addEventListener('focusin', remember)
    return () => { document.removeEventListener('focusin', remember) }
  }, [opened])
  useLayoutEffect(() => {
    if (!opened) return undefined
    const { activeElement } = document
    // A control that no longer exists, such as the item of a menu, has lost the focus to the page.
    const opener = openerOf(activeElement === document.body ? lastFocused.current : activeElement)
    return () => {
      const target = opener?.isConnected === true ? opener : document.querySelector('main')
      if (target instanceof HTMLElement) target.focus({ preventScroll: true })
    }
  }, [opened])
}

/** A menu is closed when its item opens a dialog: the button of the menu gets the focus. */
function openerOf(element: Element | null): Element | null {
  const menu = element?.closest('[role="menu"]')
  return menu ? document.getElementById(menu.getAttribute('aria-labelledby') ?? '') : element
}

/** If the focused control is removed or disabled, the browser drops the focus: the dialog takes it. */
function useKeptFocus(opened: boolean, body: React.RefObject<HTMLElement | null>): void {
  useEffect(() => {
    if (!opened) return undefined
    const observer = new MutationObserver(() => {
      const { activeElement } = document
      if (activeElement === null || activeElement === document.body || activeElement.matches(':disabled')) {
        body.current?.focus({ preventScroll: true })
      }
    })
    observer.observe(document.body, { childList: true, subtree: true, attributeFilter: ['disabled'] })
    return () => { observer.disconnect() }
  }, [opened, body])
}
