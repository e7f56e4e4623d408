import type { ResponseOf } from '../../api.ts'
import { Figure, Figures } from '../../components/figure.tsx'
import { approximate, count, countShort, counted, duration, money, moneyShort, percent } from '../../format.ts'

type Panel = ResponseOf<'GET /panel'>
type Period = Panel['now']

/** Six figures of the selected time range, compared with the previous period. */
export function PanelFigures({ panel }: { readonly panel: Panel }) {
  const { now, before } = panel
  const [tokens, tokensBefore] = [tokensOf(now), tokensOf(before)]
  const [share, shareBefore] = [errorShare(now), errorShare(before)]
  return (
    <Figures columns={6}>
      <Figure label="Requests" value={countShort(now.figures.requests)} exact={count(now.figures.requests)}
        before={compared(now.figures.requests, before.figures.requests, countShort)} />
      <Figure label="Errors" value={percent(share)} exact={counted(now.figures.errors, 'request')} rise="bad"
        before={{ ...compared(share, shareBefore, percent), areShares: true }} />
      <Figure label="Tokens" value={countShort(tokens)}
        exact={`${count(now.figures.input_tokens)} input, ${count(now.figures.output_tokens)} output`}
        before={compared(tokens, tokensBefore, countShort)} />
      <Figure label="Spend" value={moneyShort(now.figures.cost_usd)} exact={money(now.figures.cost_usd)}
        before={{
          text: moneyShort(before.figures.cost_usd),
          now: approximate(now.figures.cost_usd),
          past: approximate(before.figures.cost_usd),
        }} />
      <Figure label="First byte, median" value={duration(now.first_byte.p50_ms)} rise="bad"
        before={comparedTime(now.first_byte.p50_ms, before.first_byte.p50_ms)} />
      <Figure label="First byte, p95" value={duration(now.first_byte.p95_ms)} rise="bad"
        before={comparedTime(now.first_byte.p95_ms, before.first_byte.p95_ms)} />
    </Figures>
  )
}

function compared(now: number, past: number, write: (value: number) => string) {
  return { text: write(past), now, past }
}

function comparedTime(now: number | null, past: number | null) {
  return { text: duration(past), now, past }
}

function tokensOf({ figures }: Period): number {
  return figures.input_tokens + figures.output_tokens
}

function errorShare({ figures }: Period): number {
  return figures.requests === 0 ? 0 : figures.errors / figures.requests
}
