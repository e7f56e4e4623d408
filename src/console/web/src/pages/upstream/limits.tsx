import type { UpstreamDetails } from '../../../../api/upstream.ts'
import { Section } from '../../components/page/page.tsx'
import { ConcurrencyLimit, LimitGrid, RateLimit } from '../../components/rate-limit.tsx'

/** The limits of an upstream, and how much of them remains. */
export function UpstreamLimits({ limits }: Pick<UpstreamDetails, 'limits'>) {
  if (limits === null) return null
  const { requests, tokens, concurrent } = limits
  return (
    <Section title="Limits" about="A target whose upstream is at its limit is skipped. Rate limits refill continuously">
      <LimitGrid>
        {requests && <RateLimit label="Requests per minute" rate={requests} />}
        {tokens && <RateLimit label="Tokens per minute" rate={tokens} />}
        {concurrent && <ConcurrencyLimit {...concurrent} />}
      </LimitGrid>
    </Section>
  )
}
