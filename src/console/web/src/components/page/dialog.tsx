import { Modal, type ModalProps } from '@mantine/core'
import { useEffect, useLayoutEffect, useRef, type ReactNode } from 'react'
import classes from './dialog.module.css'

export interface DialogProps {
  readonly opened: boolean
  readonly close: () => void
  readonly title: ReactNode
  readonly size?: ModalProps['size']
  /** true if Escape and a button close the dialog. Default: true. */
  readonly dismissible?: boolean
  /** true if a click outside of the dialog closes it. Default: the value of `dismissible`. */
  readonly closeOnClickOutside?: boolean
  readonly children: ReactNode
}

/** A modal dialog. The focus stays inside while the dialog is open. When it closes, the control that opened it gets the focus back. */
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

/**
 * Returns the focus when a dialog closes. The page gets the focus if the control no longer exists, for example because its row was removed.
 */
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
    // If the control no longer exists, such as the item of a menu, the page has the focus: use the control that had the focus before.
    const opener = openerOf(activeElement === document.body ? lastFocused.current : activeElement)
    return () => {
      const target = opener?.isConnected === true ? opener : document.querySelector('main')
      if (target instanceof HTMLElement) target.focus({ preventScroll: true })
    }
  }, [opened])
}

/** The control that gets the focus back. A menu closes when its item opens a dialog, so the button of the menu gets the focus. */
function openerOf(element: Element | null): Element | null {
  const menu = element?.closest('[role="menu"]')
  return menu ? document.getElementById(menu.getAttribute('aria-labelledby') ?? '') : element
}

/** Moves the focus to the dialog if the focused control is removed or disabled, because the browser then drops the focus. */
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
