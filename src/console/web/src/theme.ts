import { Drawer, Modal, Select, Tooltip, createTheme } from '@mantine/core'

const CLOSE = { 'aria-label': 'Close' }

/**
 * Defaults for Mantine's components. Their style is in theme.css, because the Content-Security-Policy blocks style elements. The scroll
 * lock is off, because it would write a style element.
 */
export const theme = createTheme({
  respectReducedMotion: true,
  cursorType: 'pointer',
  components: {
    Modal: Modal.extend({
      defaultProps: { lockScroll: false, radius: 'md', centered: true, closeButtonProps: CLOSE },
    }),
    Drawer: Drawer.extend({ defaultProps: { lockScroll: false, closeButtonProps: CLOSE } }),
    // Limit the options, because users search a longer list by name instead of scrolling.
    Select: Select.extend({ defaultProps: { allowDeselect: false, checkIconPosition: 'right', limit: 200 } }),
    Tooltip: Tooltip.extend({ defaultProps: { openDelay: 250, multiline: true, withArrow: true } }),
  },
})
