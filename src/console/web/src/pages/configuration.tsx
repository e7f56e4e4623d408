import type { Configuration } from '../../../api/routes.ts'
import { useApiQuery } from '../api-hooks.ts'
import { CodeBlock } from '../components/code-block.tsx'
import { Copy } from '../components/copy.tsx'
import { Notice } from '../components/notice.tsx'
import { Page, Section, Stack } from '../components/page.tsx'
import { QueryView } from '../components/states.tsx'
import { Time } from '../components/time.tsx'
import classes from './configuration/configuration.module.css'
import { tokens } from './configuration/tokens.ts'

/** Refresh interval, ms. */
const REFRESH = 10_000

/** The active configuration, with masked secrets. */
export default function ConfigurationPage() {
  const configuration = useApiQuery('GET /configuration', {}, { every: REFRESH })
  return (
    <Page title="Configuration"
      about="The active configuration. Secrets are masked; ${NAME} is shown as written.">
      <QueryView of={configuration} height={560}>
        {data => <ActiveConfiguration configuration={data} />}
      </QueryView>
    </Page>
  )
}

function ActiveConfiguration(
  { configuration: { file, loaded_at, text, failure, restart_needed } }:
  { readonly configuration: Configuration },
) {
  return (
    <Stack>
      {failure !== null && (
        <Notice tone="bad" title={rejectionTitle(failure.problems)}>
          <p>
            Rejected at <Time at={failure.at} /> UTC. The configuration below stays active.
          </p>
          <ul className={classes.problems}>
            {failure.problems.map(({ place, severity, message }) => (
              <li key={`${place} ${message}`}><code>{place}</code> {severity}: {message}</li>
            ))}
          </ul>
        </Notice>
      )}
      {restart_needed.length > 0 && (
        <Notice tone="warn" title="Restart needed">
          <p>These settings have changed and take effect at the next start:</p>
          <ul className={classes.problems}>{restart_needed.map(key =>
            <li key={key}><code>{key}</code></li>)}</ul>
        </Notice>
      )}
      <Section title={file} flush actions={
        <span className={classes.loaded}>
          <span className="dim">loaded <Time at={loaded_at} form="relative" /></span>
          <Copy value={text} what="configuration" />
        </span>
      }>
        <Yaml text={text} label={file} />
      </Section>
    </Stack>
  )
}

type Problem = NonNullable<Configuration['failure']>['problems'][number]

/** The place of the first error: `Last reload rejected: gateway.yaml:41:5` */
function rejectionTitle(problems: readonly Problem[]): string {
  const place = problems.find(({ severity }) => severity === 'error')?.place
  return `Last reload rejected${place === undefined ? '' : `: ${place.slice(place.lastIndexOf('/') + 1)}`}`
}

function Yaml({ text, label }: { readonly text: string; readonly label: string }) {
  const lines = text.replace(/\n$/, '').split('\n')
  return (
    <CodeBlock label={`Contents of ${label}`} form="bare">
      {lines.map((line, n) => (
        // Lines have no other identity than their number.
        // oxlint-disable-next-line react/no-array-index-key
        <span key={n} className={classes.line} data-number={n + 1}>
          {tokens(line).map(({ kind, text: piece }) =>
            <span key={kind} className={classes[kind]}>{piece}</span>)}
          {'\n'}
        </span>
      ))}
    </CodeBlock>
  )
}
