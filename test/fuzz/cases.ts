import fc from 'fast-check'
import { EDIT, GROWTH, edited } from './edits.ts'
import type { Edit } from './edits.ts'
import { REQUESTS } from './requests.ts'
import { PLAIN, RESPONSES, chooseResponse } from './responses.ts'
import type { Wire } from './responses.ts'
import { BUDGETS, TARGETS } from './targets.ts'
import { fit } from './template.ts'
import type { Template } from './template.ts'
import type { Script, ScriptedResponse } from './upstream.ts'

/** What is sent, and what comes back, written down whole: so a finding can be kept in a file. */
export interface Scenario {
  /** A name of REQUESTS, and one of TARGETS. */
  readonly request: keyof typeof REQUESTS
  readonly target: keyof typeof TARGETS
  readonly body: Template
  /** Its content coding. */
  readonly encoding: string
  /** The key's number in BUDGETS; null = a key without a budget. */
  readonly budget: number | null
  /** How many are sent at once. */
  readonly burst: number
  /** Of the first request that reaches an upstream, the second, and so on; the last of all that follow. */
  readonly responses: readonly ScriptedResponse[]
}

/** Choices that make a scenario. fast-check makes them, and makes them smaller. */
export interface Case extends Omit<Scenario, 'body' | 'responses'> {
  readonly size: keyof typeof SIZES
  readonly edits: readonly Edit[]
  /** Not of a small case. */
  readonly growth: Edit
  readonly responses: readonly { readonly by: number, readonly growth: Edit | null, readonly edits: readonly Edit[], readonly wire: Wire }[]
}

/** Most bytes of a body. `full` is what must not hold up others; `huge` must only leave room in memory. */
const SIZES = { small: 6_000, full: 950_000, huge: 40_000_000 } as const
/** Of what the gateway holds whole to translate it. */
const MOST_OF_RESPONSE = 24_000_000

const WIRE: fc.Arbitrary<Wire> = fc.record({
  cut: weighted<number | null>([9, fc.constant(null)], [2, fc.nat(1000)]), flip: weighted<number | null>([15, fc.constant(null)], [1, fc.nat(1000)]),
  piece: fc.constantFrom(0, 0, 0, 1, 7, 1000, 70_000), encoding: fc.constantFrom('', '', '', '', 'gzip', 'br', 'deflate', 'zstd', 'x-unknown'), eol: fc.constantFrom('\n', '\n', '\n', '\r\n', '\r'),
})

/** The choices of one case; `huge` ones only where they are wanted. */
export function caseArbitrary(withHuge: boolean): fc.Arbitrary<Case> {
  return fc.record({
    request: fc.constantFrom(...Object.keys(REQUESTS)), target: fc.constantFrom(...Object.keys(TARGETS)),
    size: weighted<keyof typeof SIZES>([120, fc.constant('small')], [40, fc.constant('full')], [withHuge ? 1 : 0, fc.constant('huge')]),
    edits: fc.array(EDIT, { maxLength: 5 }), growth: GROWTH, encoding: fc.constantFrom('', '', '', '', '', '', 'gzip', 'br', 'deflate', 'zstd'),
    budget: weighted<number | null>([3, fc.constant(null)], [2, fc.nat(BUDGETS.length - 1)]), burst: weighted([12, fc.constant(1)], [1, fc.constantFrom(3, 20)]),
    responses: fc.array(fc.record({ by: fc.nat(0xffff), growth: fc.option(GROWTH), edits: fc.array(EDIT, { maxLength: 4 }), wire: WIRE }), { minLength: 1, maxLength: 3 }),
  })
}

const REQUEST_BODIES = Object.values(REQUESTS).map(({ body }) => body)
const RESPONSE_BODIES = Object.values(RESPONSES).flatMap(list => list.map(({ body }) => body))

/** The body that a case sends. */
export function bodyOf({ request, edits, growth, size }: Case): Template {
  return fit(edited(REQUESTS[request]?.body ?? null, size === 'small' ? edits : [growth, ...edits], REQUEST_BODIES), SIZES[size])
}

/**
 * How a case's upstreams respond. To a key with a budget they are honest: what they report is what they were asked for,
 * so what such a request costs is what it may cost at most.
 */
export function scriptOf({ responses, size, budget }: Case): Script {
  return (kind, number) => {
    const { by, edits, growth, wire } = responses[Math.min(number, responses.length - 1)] as Case['responses'][number]
    if (budget !== null) return { ...chooseResponse(kind, 0), wire: PLAIN }
    const seed = chooseResponse(kind, by)
    return { ...seed, body: fit(edited(seed.body, size === 'small' || growth === null ? edits : [growth, ...edits], RESPONSE_BODIES), Math.min(MOST_OF_RESPONSE, SIZES[size])), wire }
  }
}

/** How a scenario's upstreams respond. */
export function scriptOfScenario({ responses }: Scenario): Script {
  return (kind, number) => responses[Math.min(number, responses.length - 1)] ?? { ...chooseResponse(kind, 0), wire: PLAIN }
}

function weighted<T>(...choices: readonly (readonly [weight: number, arbitrary: fc.Arbitrary<T>])[]): fc.Arbitrary<T> {
  return fc.oneof(...choices.filter(([weight]) => weight > 0).map(([weight, arbitrary]) => ({ weight, arbitrary })))
}
