import { systemClock } from '../../src/base/clock.ts'
import type { Target } from '../../src/config/types.ts'
import type { LiveUpstream } from '../../src/upstreams/live-upstreams.ts'
import { UpstreamAttempt } from '../../src/pipeline/exchange/upstream-attempt.ts'
import type { UpstreamAttemptOptions } from '../../src/pipeline/exchange/upstream-attempt.ts'

/** An attempt without a transport. */
export class UncarriedAttempt extends UpstreamAttempt {
  readonly mayBeBilled = false

  constructor(target: Target, options: Partial<UpstreamAttemptOptions> = {}) {
    super({
      target,
      upstream: {} as LiveUpstream,
      use: { purpose: ['test'], key: null, choosesAccount: false, own: null },
      refused: [],
      sent: { sentBody: null, hidesUsage: false, dropped: [], translated: null },
      ownInput: null,
      quoted: null,
      record: { upstream: 'up', model: null, outcome: 'ok', ms: 0, atMs: 0 },
      health: { responseStarted: noop, succeeded: noop, failed: noop, abandoned: noop },
      reservation: null,
      clock: systemClock,
      startedAt: 0,
      ...options,
    })
  }

  stop(): void {}
}

function noop(): void {}
