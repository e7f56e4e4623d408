import type { ResponseOf } from '../../api.ts'
import { Figure, Figures } from '../../components/charts/figure.tsx'
import { approximate, costText, count, countShort, counted, duration, moneyShort, percent } from '../../format.ts'

type Panel = ResponseOf<'GET /panel'>
type Period = Panel['now']

/** Six figures of the selected time range. Each is compared with the previous period. */
export function PanelFigures({ panel }: { readonly panel: Panel }) {
  const { now, before } = panel
  const [tokens, tokensBefore] = [tokensOf(now), tokensOf(before)]
  const [share, shareBefore] = [errorShare(now), errorShare(before)]
  // Do not compare with a period without requests, because its figures do not exist: they are not 0.
  const compared = (text: string, value: number | null, past: number | null) =>
    (before.figures.requests === 0
      ? { text: 'no requests before', now: null, past: null }
      : { text: `vs ${text}`, now: value, past })
  return (
    <Figures columns={6}>
      <Figure label="Requests" value={countShort(now.figures.requests)} exact={count(now.figures.requests)}
        before={compared(countShort(before.figures.requests), now.figures.requests, before.figures.requests)} />
      <Figure label="Errors" value={share === null ? '–' : percent(share)} rise="bad"
        exact={counted(now.figures.errors, 'request')}
        before={{ ...compared(percent(shareBefore ?? 0), share, shareBefore), areShares: true }} />
      <Figure label="Tokens" value={countShort(tokens)}
        exact={`${count(now.figures.input_tokens)} input, ${count(now.figures.output_tokens)} output`}
        before={compared(countShort(tokensBefore), tokens, tokensBefore)} />
      <Figure label="Spend" value={costText(now.figures, moneyShort)} exact={costText(now.figures)}
        before={compared(costText(before.figures, moneyShort), knownCost(now), knownCost(before))} />
      <Figure label="First byte, median" value={duration(now.first_byte.p50_ms)} rise="bad"
        before={compared(duration(before.first_byte.p50_ms), now.first_byte.p50_ms, before.first_byte.p50_ms)} />
      <Figure label="First byte, p95" value={duration(now.first_byte.p95_ms)} rise="bad"
        before={compared(duration(before.first_byte.p95_ms), now.first_byte.p95_ms, before.first_byte.p95_ms)} />
    </Figures>
  )
}

/** The cost as a number; null = a part of the cost is unknown, so that no change can be computed. */
function knownCost({ figures }: Period): number | null {
  return figures.unpriced_requests > 0 ? null : approximate(figures.cost_usd)
}

function tokensOf({ figures }: Period): number {
  return figures.input_tokens + figures.output_tokens
}

function errorShare({ figures }: Period): number | null {
  return figures.requests === 0 ? null : figures.errors / figures.requests
}
