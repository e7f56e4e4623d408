import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import type { Browser, Page } from 'playwright-core'
import type { Test } from 'tap'
import { IS_BUILT } from './scene.ts'

export type { Page } from 'playwright-core'

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** What a page may take on the slowest of machines; a fault is told by what is on it, not by its time. */
const MOST_MS = 120_000
/** With SCREENSHOTS=1 the run writes those of the documentation. */
const SHOTS = process.env['SCREENSHOTS']
  ? fileURLToPath(new URL('../../../docs/public/screenshots', import.meta.url))
  : null

/** A browser, closed when the test ends; null where there is none, or nothing to look at, which is said. */
export async function openBrowser(t: Test): Promise<Browser | null> {
  const lack = !existsSync(CHROMIUM)
    ? `no Chromium at ${CHROMIUM}: install it, or set CHROMIUM to where it is`
    : !IS_BUILT ? 'the pages are not built: npm run build:console'
    : null
  if (lack !== null) {
    t.pass('the console in a browser', { skip: lack })
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

/** As people look at it: in the light and in the dark, at a desk and on a phone. */
export const LOOKS: readonly Look[] = [
  { scheme: 'light', width: 1280 },
  { scheme: 'dark', width: 1280 },
  { scheme: 'light', width: 390 },
  { scheme: 'dark', width: 390 },
]

export interface Visit {
  readonly page: Page
  /** What must not be: errors on the console, what the CSP refused, requests to elsewhere. */
  readonly faults: readonly string[]
}

export interface VisitOptions {
  readonly origin: string
  /** Logs in first. */
  readonly as?: { readonly name: string; readonly password: string } | { readonly key: string }
  readonly look?: Look
}

/** A page of its own, with its own cookies. It is at no address yet. */
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
  context.setDefaultTimeout(MOST_MS)
  t.teardown(() => context.close())
  const faults: string[] = []
  const page = await context.newPage()
  page.on('pageerror', error => { faults.push(`error: ${error.message}`) })
  page.on('console', message => {
    // What the CSP refuses is told as an error too. An answer that the
    // page expects to be one is no fault of it.
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

/** Goes to a page, below /console, and waits until nothing on it is being loaded. */
export async function go(page: Page, path: string): Promise<void> {
  await page.goto(`/console${path}`)
  await settled(page)
}

/** Waits until the page has its heading, and nothing on it is being loaded or changes its colour. */
export async function settled(page: Page): Promise<void> {
  await page.locator('h1').waitFor()
  await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' })
  await page.evaluate(`Promise.allSettled(document.getAnimations()
    .filter(({ effect }) => effect.getTiming().iterations !== Infinity).map(({ finished }) => finished))`)
}

/** What axe-core finds that keeps people out: faults that it calls serious or critical. */
export async function barriers(page: Page): Promise<string[]> {
  // In a world of its own, where the page's CSP does not reach; as an extension would be.
  const session = await page.context().newCDPSession(page)
  const { frameTree } = await session.send('Page.getFrameTree')
  const { executionContextId } = await session.send(
    'Page.createIsolatedWorld', { frameId: frameTree.frame.id },
  )
  const evaluate = (expression: string) => session.send('Runtime.evaluate', {
    expression, contextId: executionContextId, awaitPromise: true, returnByValue: true,
  })
  await evaluate(AXE)
  const { result, exceptionDetails } = await evaluate(`axe.run().then(({ violations }) => violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(each => id + ' ' + each.target + ' ' + each.failureSummary)))`)
  await session.detach()
  if (exceptionDetails) {
    throw new Error(`axe-core: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`)
  }
  return result.value as string[]
}

/** By how many px the page is wider than the screen. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate<number>(
    'Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)',
  )
}

export interface WalkOptions extends Omit<VisitOptions, 'look'> {
  readonly path: string
  /** The name of its picture for the documentation. */
  readonly shot?: string
  /** Which looks have one; at a desk in the light, unless told. */
  readonly shots?: readonly Look[]
}

/**
 * Looks at one page in every way in which people look at it.
 * @param ready - what to do before it is looked at
 */
export async function walk(
  t: Test, browser: Browser, options: WalkOptions,
  ready: (page: Page) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  for (const look of LOOKS) {
    await t.test(`${options.path} ${look.scheme} ${look.width}`, async t => {
      const { page, faults } = await visit(t, browser, { ...options, look })
      await go(page, options.path)
      await ready(page)
      t.strictSame(await barriers(page), [], 'nothing keeps people out')
      t.equal(await overflow(page), 0, 'nothing is wider than the screen')
      t.strictSame(faults, [], 'nothing is refused, fails or asks elsewhere')
      if (options.shot !== undefined && (options.shots ?? LOOKS.slice(0, 1)).includes(look)) {
        await shoot(page, `${options.shot}-${look.width === 390 ? 'phone' : 'desk'}-${look.scheme}`)
      }
    })
  }
}

/** Writes a picture for the documentation, where the run is to write them. */
export async function shoot(page: Page, name: string): Promise<void> {
  if (SHOTS === null) return
  mkdirSync(SHOTS, { recursive: true })
  await page.screenshot({ path: join(SHOTS, `${name}.png`), animations: 'disabled' })
}
