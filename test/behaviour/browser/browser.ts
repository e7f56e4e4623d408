import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import type { Browser, Page } from 'playwright-core'
import type { Test } from 'tap'
import { IS_BUILT } from './scene/scene.ts'

export type { Page } from 'playwright-core'

/** The headless shell takes half of the CPU time of Chromium with its own windows. */
const CHROMIUM = process.env['CHROMIUM'] ?? ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(file => existsSync(file)) ?? null
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** Timeout of each step, ms. Long, because slow machines are no failure. */
const TIMEOUT_MS = 120_000
/** SCREENSHOTS=1 writes the screenshots of the documentation. */
const SHOTS = process.env['SCREENSHOTS']
  ? fileURLToPath(new URL('../../../docs/public/screenshots', import.meta.url))
  : null

/** A browser, closed when the test ends; null (and a skipped test) without Chromium or without built pages. */
export async function openBrowser(t: Test): Promise<Browser | null> {
  if (CHROMIUM === null || !existsSync(CHROMIUM)) {
    t.pass('the console in a browser', { skip: `no Chromium at ${CHROMIUM ?? '/usr/bin'}: install it, or set CHROMIUM to where it is` })
    return null
  }
  if (!IS_BUILT) {
    t.pass('the console in a browser', { skip: 'the pages are not built: npm run build:console' })
    return null
  }
  const isRoot = process.getuid?.() === 0
  const browser = await chromium.launch({ executablePath: CHROMIUM, ...isRoot && { args: ['--no-sandbox'] } })
  t.teardown(() => browser.close())
  return browser
}

export interface Look {
  readonly scheme: 'light' | 'dark'
  readonly width: 1280 | 390
}

/** Light and dark theme, on a desktop and on a phone. */
export const LOOKS: readonly Look[] = [
  { scheme: 'light', width: 1280 },
  { scheme: 'dark', width: 1280 },
  { scheme: 'light', width: 390 },
  { scheme: 'dark', width: 390 },
]

/** Each theme and each screen once: steps that take long are tried in these. */
export const FAR_LOOKS: readonly Look[] = [{ scheme: 'light', width: 1280 }, { scheme: 'dark', width: 390 }]

export interface Visit {
  readonly page: Page
  /** Errors on the browser console, violations of the CSP, and requests to other hosts. */
  readonly faults: readonly string[]
}

export interface VisitOptions {
  readonly origin: string
  /** Logs in first. */
  readonly as?: { readonly name: string; readonly password: string } | { readonly key: string }
  readonly look?: Look
}

/** A new page with its own cookies, at no address yet. */
export async function visit(t: Test, browser: Browser, options: VisitOptions): Promise<Visit> {
  const { origin, as, look = { scheme: 'light', width: 1280 } } = options
  const context = await browser.newContext({
    baseURL: origin,
    colorScheme: look.scheme,
    reducedMotion: 'reduce',
    ...look.width === 390
      ? { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
      : { viewport: { width: 1280, height: 800 } },
  })
  context.setDefaultTimeout(TIMEOUT_MS)
  t.teardown(() => context.close())
  const faults: string[] = []
  const page = await context.newPage()
  page.on('pageerror', error => { faults.push(`error: ${error.message}`) })
  page.on('console', message => {
    // Violations of the CSP are errors too. HTTP error responses are not: pages handle them.
    const isExpected = message.text().includes('the server responded with a status of')
    if (['error', 'warning'].includes(message.type()) && !isExpected) {
      faults.push(`console: ${message.text()}`)
    }
  })
  page.on('request', request => {
    const url = request.url()
    if (!url.startsWith(`${origin}/`) && !url.startsWith('blob:') && !url.startsWith('data:')) {
      faults.push(`request: ${url}`)
    }
  })
  if (as) {
    const answer = await context.request.post('/console/api/session', { data: as })
    if (answer.status() !== 201) throw new Error(`login answered ${answer.status()}: ${await answer.text()}`)
  }
  return { page, faults }
}

/** Opens a page below /console, and waits until the page is loaded. */
export async function go(page: Page, path: string): Promise<void> {
  await page.goto(`/console${path}`)
  await settled(page)
}

/** Waits until the page has its heading, and nothing on it loads or is animated. */
export async function settled(page: Page): Promise<void> {
  await page.locator('h1').waitFor()
  await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' })
  await page.evaluate(`Promise.allSettled(document.getAnimations()
    .filter(({ effect }) => effect.getTiming().iterations !== Infinity).map(({ finished }) => finished))`)
}

/** Changes the colour scheme of the system, and waits until the page is drawn in it. */
async function useScheme(page: Page, colorScheme: Look['scheme']): Promise<void> {
  await page.emulateMedia({ colorScheme })
  await page.locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor({ state: 'attached' })
  await page.evaluate('new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
  await settled(page)
}

/** Rules about colours. After all rules are checked in one theme, only these rules can fail in the other theme. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block']

/** The accessibility violations that axe-core rates serious or critical. @param rules absent = all */
export async function barriers(page: Page, rules?: readonly string[]): Promise<string[]> {
  // Runs in an isolated world, like a browser extension, where the CSP of the page does not apply.
  const session = await page.context().newCDPSession(page)
  const { frameTree } = await session.send('Page.getFrameTree')
  const { executionContextId } = await session.send(
    'Page.createIsolatedWorld', { frameId: frameTree.frame.id },
  )
  const evaluate = (expression: string) => session.send('Runtime.evaluate', {
    expression, contextId: executionContextId, awaitPromise: true, returnByValue: true,
  })
  await evaluate(AXE)
  // Without a second fetch of the style sheets, which only an experimental rule needs.
  const options = { preload: false, ...rules && { runOnly: rules } }
  const { result, exceptionDetails } = await evaluate(`axe.run(${JSON.stringify(options)}).then(({ violations }) => violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(each => id + ' ' + each.target + ' ' + each.failureSummary)))`)
  await session.detach()
  if (exceptionDetails) {
    throw new Error(`axe-core: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`)
  }
  return result.value as string[]
}

/** How much wider the page is than the screen, px. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate<number>(
    'Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)',
  )
}

export interface WalkOptions extends Omit<VisitOptions, 'look'> {
  readonly path: string
  /** Name of the screenshot for the documentation. */
  readonly shot?: string
  /** Looks with a screenshot. Default: desktop, light. */
  readonly shots?: readonly Look[]
}

/** Each screen loads a page in one theme, and then changes to the other theme. */
const LOADS = [
  { width: 1280, schemes: ['light', 'dark'] },
  { width: 390, schemes: ['dark', 'light'] },
] as const

/**
 * Checks one page in every look: accessibility, overflow and faults.
 * @param ready - steps before the checks
 */
export async function walk(
  t: Test, browser: Browser, options: WalkOptions,
  ready: (page: Page) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  for (const { width, schemes } of LOADS) {
    await t.test(`${options.path} ${width}`, async t => {
      const { page, faults } = await visit(t, browser, { ...options, look: { scheme: schemes[0], width } })
      await go(page, options.path)
      await ready(page)
      for (const scheme of schemes) {
        await useScheme(page, scheme)
        t.strictSame(await barriers(page, scheme === schemes[0] ? undefined : COLOUR_RULES), [], `${scheme}: no accessibility violations`)
        t.equal(await overflow(page), 0, `${scheme}: no horizontal overflow`)
        t.strictSame(faults, [], `${scheme}: no errors, CSP violations or requests to other hosts`)
        const isShot = (options.shots ?? LOOKS.slice(0, 1)).some(look => look.scheme === scheme && look.width === width)
        if (options.shot !== undefined && isShot) {
          await shoot(page, `${options.shot}-${width === 390 ? 'phone' : 'desk'}-${scheme}`)
        }
      }
    })
  }
}

/** Writes a screenshot for the documentation, if SCREENSHOTS is set. */
export async function shoot(page: Page, name: string): Promise<void> {
  if (SHOTS === null) return
  mkdirSync(SHOTS, { recursive: true })
  await page.screenshot({ path: join(SHOTS, `${name}.png`), animations: 'disabled' })
}
