import type { Configuration } from '../../../api/routes.ts'
import { useApiQuery } from '../ask.ts'
import { CodeBlock } from '../components/code-block.tsx'
import { Copy } from '../components/copy.tsx'
import { Notice } from '../components/notice.tsx'
import { Page, Section, Stack } from '../components/page.tsx'
import { QueryView } from '../components/states.tsx'
import { Time } from '../components/time.tsx'
import classes from './configuration/configuration.module.css'
import { tokens } from './configuration/tokens.ts'

/** How often it is looked at whether another one was loaded, ms. */
const REFRESH = 10_000

/** What is in force, without its secrets. */
export default function ConfigurationPage() {
  const configuration = useApiQuery('GET /configuration', {}, { every: REFRESH })
  return (
    <Page title="Configuration"
      about="What is in force, without its secrets. ${NAME} stands as it was written.">
      <QueryView of={configuration} height={560}>{data => <Running configuration={data} />}</QueryView>
    </Page>
  )
}

function Running({ configuration: { file, loaded_at, text, failure,
  restart_needed } }: { readonly configuration: Configuration }) {
  return (
    <Stack>
      {failure !== null && (
        <Notice tone="bad" title="The last change was not taken">
          <p>
            At <Time at={failure.at} /> UTC the file was read again and refused. What stands below is still
            in force.
          </p>
          <ul className={classes.problems}>
            {failure.problems.map(({ place, severity, message }) => (
              <li key={`${place} ${message}`}><code>{place}</code> {severity}: {message}</li>
            ))}
          </ul>
        </Notice>
      )}
      {restart_needed.length > 0 && (
        <Notice tone="warn" title="A restart is needed">
          <p>These keys of the file differ from what the gateway was started with,
            and wait for its next start:</p>
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

function Yaml({ text, label }: { readonly text: string; readonly label: string }) {
  const lines = text.replace(/\n$/, '').split('\n')
  return (
    <CodeBlock label={`The text of ${label}`} form="bare">
      {lines.map((line, n) => (
        // The numbers are what tells lines apart.
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
