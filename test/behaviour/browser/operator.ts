import type { Page } from './browser.ts'

type Locator = ReturnType<Page['locator']>

/** A user who operates a page with the mouse or the keyboard. */
export interface Operator {
  /** How many controls were activated. */
  readonly activated: number
  /** Faults of the focus between the controls: lost, hidden, not marked, or in another order than the page. */
  readonly faults: readonly string[]
  /** Clicks a control; with the keyboard: Tab up to it, then Enter, or the space bar for a checkbox. */
  activate(control: Locator): Promise<void>
}

/** More focus stops than any tested page has. */
const MAX_STOPS = 300

export function mouse(): Operator {
  let activated = 0
  return {
    get activated() { return activated },
    faults: [],
    activate: async control => {
      activated++
      await control.click()
    },
  }
}

export function keyboard(page: Page): Operator {
  let activated = 0
  const faults: string[] = []
  return {
    get activated() { return activated },
    faults,
    activate: async control => {
      activated++
      await control.waitFor()
      const focused = control.and(page.locator(':focus'))
      for (let stop = 0; await focused.count() === 0; stop++) {
        if (stop === MAX_STOPS) throw new Error(`Tab does not reach ${control}`)
        await page.keyboard.press('Tab')
        faults.push(...await focusFaults(page) ?? ['the focus is lost'])
      }
      await page.keyboard.press(await control.getAttribute('type') === 'checkbox' ? 'Space' : 'Enter')
    },
  }
}

/** Presses Tab up to the end of the page. @returns the number of stops, and the faults of the focus */
export async function tabThrough(page: Page): Promise<{ stops: number; faults: string[] }> {
  const faults: string[] = []
  for (let stops = 0; stops < MAX_STOPS; stops++) {
    await page.keyboard.press('Tab')
    const found = await focusFaults(page)
    if (found === null) return { stops, faults }
    faults.push(...found)
  }
  throw new Error(`Tab does not leave the page after ${MAX_STOPS} stops`)
}

/** Faults of the focused element; null = no element has the focus, or the focus is at the start again. */
function focusFaults(page: Page): Promise<string[] | null> {
  return page.evaluate<string[] | null>(FAULTS)
}

/**
 * Runs in the page. A switch is an unseen checkbox; the element after it is drawn. Fields have a ring of 2 px too: a border in another
 * colour alone is easy to overlook.
 */
const FAULTS = `(() => {
  const focused = document.activeElement
  if (focused === null || focused === document.body || focused === window.focusedFirst) return null
  if (!window.focusedFirst?.isConnected) window.focusedFirst = focused
  const name = focused.ariaLabel || focused.labels?.[0]?.textContent || focused.textContent.trim() || focused.tagName
  const faults = []
  const before = window.focusedBefore
  if (before?.isConnected && !(before.compareDocumentPosition(focused) & Node.DOCUMENT_POSITION_FOLLOWING)) {
    faults.push('comes after what follows it')
  }
  window.focusedBefore = focused
  const drawn = focused.type === 'checkbox' && focused.offsetWidth < 4 ? focused.nextElementSibling : focused
  for (const animation of document.getAnimations()) {
    if (animation.effect.getTiming().iterations !== Infinity) animation.finish()
  }
  const { left, right, top, bottom } = drawn.getBoundingClientRect()
  const [x, y] = [Math.max(left, 0), Math.max(top, 0)]
  const [width, height] = [Math.min(right, innerWidth) - x, Math.min(bottom, innerHeight) - y]
  const hits = [[0.5, 0.5], [0.1, 0.2], [0.9, 0.2], [0.1, 0.8], [0.9, 0.8]]
    .map(([across, down]) => document.elementFromPoint(x + across * width, y + down * height))
  if (width < 1 || height < 1) faults.push('is out of view')
  else if (!hits.some(hit => hit !== null && (drawn.contains(hit) || hit.contains(drawn)))) {
    faults.push('is covered by ' + hits[0]?.outerHTML.slice(0, 80))
  }
  const { outlineStyle, outlineWidth } = getComputedStyle(drawn)
  if (outlineStyle === 'none' || parseFloat(outlineWidth) < 2) faults.push('has no ring')
  return faults.map(fault => name.slice(0, 60) + ' ' + fault)
})()`
