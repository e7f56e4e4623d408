import { SegmentedControl } from '@mantine/core'
import { useSearchParams } from 'wouter'
import type { Configuration } from '../../../api/routes.ts'
import { useApiQuery } from '../api-hooks.ts'
import { Copy } from '../components/copy.tsx'
import { Notice } from '../components/page/notice.tsx'
import { Page, Section, Stack } from '../components/page/page.tsx'
import { PlaceLink } from '../components/place-link.tsx'
import { QueryView } from '../components/page/states.tsx'
import { Time } from '../components/time.tsx'
import { counted } from '../format.ts'
import classes from './configuration/configuration.module.css'
import { Reloads } from './configuration/reloads.tsx'
import { Yaml } from './configuration/yaml.tsx'

/** ms between two refreshes. */
const REFRESH = 10_000

/** The active file with secrets masked, the warnings for it, and the last reloads. */
export default function ConfigurationPage() {
  const configuration = useApiQuery('GET /configuration', {}, { every: REFRESH })
  return (
    <Page title="Configuration" about="The active file. Secrets are masked; ${NAME} is shown as written.">
      <QueryView of={configuration} height={560}>
        {data => <ActiveConfiguration configuration={data} />}
      </QueryView>
    </Page>
  )
}

function ActiveConfiguration({ configuration }: { readonly configuration: Configuration }) {
  const { file, loaded_at, text, warnings, failure, reloads, restart_needed } = configuration
  const [search, setSearch] = useSearchParams()
  const rejected = failure?.text ?? null
  const shows = rejected !== null && search.get('text') === 'rejected' ? 'rejected' : 'active'
  const shown = shows === 'rejected' && rejected !== null ? rejected : text
  const line = Number(search.get('line') ?? 0)
  return (
    <Stack>
      {failure !== null && (
        <Notice tone="bad" title={rejectionTitle(failure.problems)}>
          <p>
            Rejected at <Time at={failure.at} /> UTC. The previous configuration stays active.
          </p>
          <Problems problems={failure.problems} text="rejected" />
        </Notice>
      )}
      {restart_needed.length > 0 && (
        <Notice tone="warn" title="Restart needed">
          <p>These settings have changed and take effect at the next start:</p>
          <ul className={classes.problems}>{restart_needed.map(key =>
            <li key={key}><code>{key}</code></li>)}</ul>
        </Notice>
      )}
      {warnings.length > 0 && (
        <Notice tone="warn" title={counted(warnings.length, 'warning')}>
          <Problems problems={warnings} text="active" />
        </Notice>
      )}
      <Section title={file} flush actions={
        <span className={classes.loaded}>
          {rejected !== null && (
            <SegmentedControl size="xs" aria-label="Version" value={shows}
              data={[{ value: 'active', label: 'Active' }, { value: 'rejected', label: 'Rejected' }]}
              onChange={value => { setSearch(value === 'rejected' ? { text: value } : {}, { replace: true }) }} />
          )}
          <span className="dim">loaded <Time at={loaded_at} form="relative" /></span>
          <Copy value={shown} what="configuration" />
        </span>
      }>
        <Yaml text={shown} label={file} {...line > 0 && { marked: line }} />
      </Section>
      <Section title="Last reloads" flush>
        <Reloads reloads={reloads} />
      </Section>
    </Stack>
  )
}

type Problem = Configuration['warnings'][number]

function Problems({ problems, text }: { readonly problems: readonly Problem[]; readonly text: 'active' | 'rejected' }) {
  return (
    <ul className={classes.problems}>
      {problems.map(({ place, severity, message }) => (
        <li key={`${place} ${message}`}><code><PlaceLink place={place} text={text} /></code> {severity}: {message}</li>
      ))}
    </ul>
  )
}

/** The title for a rejected reload, with the position of the first error: `Last reload rejected: gateway.yaml:41:5`. */
function rejectionTitle(problems: readonly Problem[]): string {
  const place = problems.find(({ severity }) => severity === 'error')?.place
  return `Last reload rejected${place === undefined ? '' : `: ${place.slice(place.lastIndexOf('/') + 1)}`}`
}
