import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { HookConfig } from '../../config/hook-types.ts'
import type { GroupRules, Key } from '../../config/key-types.ts'
import type { CircuitLog } from '../../routing/circuit-log.ts'
import { Health, type CandidateHealth } from '../../routing/health.ts'
import { withoutModel } from '../../routing/candidate.ts'
import { FailureLog } from './failure-log.ts'
import { Hook, circuitName, keyOf, type HookParts } from './hook.ts'
import { Tap } from './tap.ts'

/** A hook with its log, and the queue of its copies; null = it decides. */
export interface LiveHook {
  readonly hook: Hook
  readonly failures: FailureLog
  readonly tap: Tap | null
}

export interface HookSetParts extends Pick<HookParts, 'observe'> {
  readonly clock: Clock
  readonly log: Logger
  /** Gets an entry for each circuit that opens or closes. */
  readonly circuits: CircuitLog
}

/** Whose request it is, and where it goes: each can name hooks. */
export interface HookScope {
  readonly route: { readonly hooks: readonly string[] }
  readonly key: Pick<Key, 'hooks'> | null
  /** The nearest first. */
  readonly groups: readonly GroupRules[]
}

/** A LiveHook of one or more configurations. */
interface Held extends LiveHook {
  holders: number
}

/** The hooks of a configuration. A reload keeps a hook that it does not change: its connections, its queue and its circuit. */
export class HookSet {
  readonly health: Health
  readonly #hooks: ReadonlyMap<string, Held>
  readonly #all: readonly string[]

  /** @param before the hooks of the previous configuration; null = none @throws the system's error for a CA file that cannot be read */
  constructor(configs: ReadonlyMap<string, HookConfig>, { clock, log, circuits, observe }: HookSetParts, before: HookSet | null) {
    this.health = before?.health ?? new Health({ clock, random: Math.random, circuits })
    this.#all = [...configs.values()].filter(({ all }) => all).map(({ name }) => name)
    const open = (config: HookConfig): Held => {
      const hook = new Hook(config, { clock, health: this.health, observe })
      const failures = new FailureLog(clock, log, config.name, consequence(config))
      const onDrop = (on: 'request' | 'response') => observe(config.name, on, 'dropped', 0)
      return { hook, failures, tap: config.tap ? new Tap(hook, failures, onDrop) : null, holders: 0 }
    }
    const old: ReadonlyMap<string, Held> = before === null ? new Map() : before.#hooks
    this.#hooks = new Map(Array.from(configs, ([name, config]) => {
      const known = old.get(name)
      return [name, known !== undefined && known.hook.key === keyOf(config) ? known : open(config)]
    }))
  }

  get names(): readonly string[] {
    return [...this.#hooks.keys()]
  }

  /** The hooks of a request, the more general first, each once: those for all, of its groups, its key and its route. */
  of({ route, key, groups }: HookScope): readonly LiveHook[] {
    const names = new Set([...this.#all, ...groups.toReversed().flatMap(({ hooks = [] }) => hooks), ...key?.hooks ?? [], ...route.hooks])
    return Array.from(names, name => this.#hooks.get(name)).filter(hook => hook !== undefined)
  }

  condition(name: string): CandidateHealth {
    return this.health.condition(withoutModel(circuitName(name)))
  }

  /** Keeps the hooks until `release`. @param before the hooks of the previous configuration: circuits of those that changed are forgotten */
  retain(before: HookSet | null): void {
    for (const held of this.#hooks.values()) held.holders++
    if (before === null) return
    for (const [name, { hook }] of before.#hooks) {
      if (this.#hooks.get(name)?.hook !== hook) this.health.forget(circuitName(name))
    }
  }

  /** Ends all calls, for the end of the process. */
  async destroy(): Promise<void> {
    await Promise.all(Array.from(this.#hooks.values(), ({ hook }) => hook.destroy()))
  }

  /** Closes the connections of hooks that no configuration uses. */
  release(): void {
    for (const held of this.#hooks.values()) {
      held.holders--
      if (held.holders === 0) held.hook.close()
    }
  }
}

function consequence({ tap, whenDown }: HookConfig): string {
  if (tap) return 'copies are lost'
  return whenDown === 'allow' ? 'requests pass unchecked' : 'requests are refused'
}
