import type { CheckConfig, FindKind } from '../../config/check-types.ts'
import type { GroupRules, Key } from '../../config/key-types.ts'
import { findEmails, findIps } from './addresses.ts'
import { findCards, findPhones, findSsns } from './digits.ts'
import { findIbans } from './iban.ts'
import { findSecrets } from './secrets.ts'
import { withoutOverlaps, type Finder, type Span } from './span.ts'

const FINDERS: Readonly<Record<FindKind, Finder>> = {
  secrets: findSecrets, email: findEmails, card: findCards, iban: findIbans, phone: findPhones, ssn: findSsns, ip: findIps,
}

/** A check that is ready to run. */
export interface Check extends Pick<CheckConfig, 'name' | 'size' | 'action'> {
  readonly searches: boolean
  /** The matches in the order of the text; none overlap. */
  find(text: string): Span[]
}

/** Whose request it is, and where it goes: each can name checks. */
export interface CheckScope {
  readonly route: { readonly checks: readonly string[] }
  readonly key: Pick<Key, 'checks'> | null
  /** The nearest first. */
  readonly groups: readonly GroupRules[]
}

/** The checks of a configuration. */
export class CheckSet {
  readonly #checks: ReadonlyMap<string, Check>
  readonly #all: readonly string[]

  constructor(configs: ReadonlyMap<string, CheckConfig>) {
    this.#all = [...configs.values()].filter(({ all }) => all).map(({ name }) => name)
    this.#checks = new Map(Array.from(configs, ([name, config]) => [name, checkOf(config)]))
  }

  /** The checks of a request, the more general first, each once: those for all, of its groups, its key and its route. */
  of({ route, key, groups }: CheckScope): readonly Check[] {
    const names = new Set([...this.#all, ...groups.toReversed().flatMap(({ checks = [] }) => checks), ...key?.checks ?? [], ...route.checks])
    return Array.from(names, name => this.#checks.get(name)).filter(check => check !== undefined)
  }
}

function checkOf({ name, find, size, action }: CheckConfig): Check {
  const finders = find.map(kind => FINDERS[kind])
  return { name, size, action, searches: finders.length > 0, find: text => withoutOverlaps(finders.flatMap(finder => finder(text))) }
}
