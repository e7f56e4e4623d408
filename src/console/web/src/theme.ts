import { Drawer, Modal, Select, Tooltip, createTheme } from '@mantine/core'

const CLOSE = { 'aria-label': 'Close' }

/**
 * Defaults of Mantine's components; their look is in theme.css. The Content-Security-Policy blocks
 * style elements. Locking the scroll position writes one, so it is off.
 */
export const theme = createTheme({
  respectReducedMotion: true,
  cursorType: 'pointer',
  components: {
    Modal: Modal.extend({
      defaultProps: { lockScroll: false, radius: 'md', centered: true, closeButtonProps: CLOSE },
    }),
    Drawer: Drawer.extend({ defaultProps: { lockScroll: false, closeButtonProps: CLOSE } }),
    // Longer lists are searched by name, not scrolled.
    Select: Select.extend({ defaultProps: { allowDeselect: false, checkIconPosition: 'right', limit: 200 } }),
    Tooltip: Tooltip.extend({ defaultProps: { openDelay: 250, multiline: true, withArrow: true } }),
  },
})
