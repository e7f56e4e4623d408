import { Drawer, Modal, Select, Tooltip, createTheme } from '@mantine/core'

const CLOSE = { 'aria-label': 'Close' }

/**
 * What Mantine's components do. How they look is in theme.css. Nothing here may make
 * a component write a style element:
 * that is why nothing locks the scrolling.
 */
export const theme = createTheme({
  respectReducedMotion: true,
  cursorType: 'pointer',
  components: {
    Modal: Modal.extend({
      defaultProps: { lockScroll: false, radius: 'md', centered: true, closeButtonProps: CLOSE },
    }),
    Drawer: Drawer.extend({ defaultProps: { lockScroll: false, closeButtonProps: CLOSE } }),
    // More than that nobody goes through: they are found by their names.
    Select: Select.extend({ defaultProps: { allowDeselect: false, checkIconPosition: 'right', limit: 200 } }),
    Tooltip: Tooltip.extend({ defaultProps: { openDelay: 250, multiline: true, withArrow: true } }),
  },
})
