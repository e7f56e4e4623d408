import { Autocomplete, Button, Select } from '@mantine/core'
import { IconCheck, IconX } from '@tabler/icons-react'
import { useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { useSearchParams } from 'wouter'
import type { Explanation, ExplainRequest } from '../../../../api/routes.ts'
import { ApiError, send } from '../../api.ts'
import { SESSION, useApiQuery, type Session } from '../../api-hooks.ts'
import { StatusBadge, NameLabel } from '../../components/badges.tsx'
import { Section } from '../../components/page/page.tsx'
import { Problem } from '../../components/page/problem.tsx'
import { Loading } from '../../components/page/states.tsx'
import { counted } from '../../format.ts'
import classes from './routes.module.css'

const PATHS = [
  '/v1/chat/completions', '/v1/responses', '/v1/messages', '/v1/embeddings', '/v1/images/generations',
  '/v1/audio/speech', '/v1/audio/transcriptions', '/v1/models',
]

/** @returns the question in the page's URL; null = the URL has no path to explain */
export function questionOf(search: URLSearchParams): ExplainRequest | null {
  const [path, model, key] = [search.get('path'), search.get('model'), search.get('key')]
  if (path === null || path === '') return null
  return { path, ...model !== null && model !== '' && { model }, ...key !== null && key !== '' && { key } }
}

export function useExplanation(question: ExplainRequest | null): UseQueryResult<Explanation, Error> {
  const client = useQueryClient()
  return useQuery({
    queryKey: ['POST /explain', question],
    enabled: question !== null,
    queryFn: ({ signal }) => send('POST /explain', { body: question ?? { path: '/' } }, {
      csrf: client.getQueryData<Session>(SESSION)?.csrf ?? null, signal,
    }),
  })
}

export interface ExplainProps {
  readonly question: ExplainRequest | null
  readonly explanation: UseQueryResult<Explanation, Error>
}

/** Explains to which target a request would go, without sending the request. The question is a part of the page's URL. */
export function Explain({ question, explanation }: ExplainProps) {
  const [, setSearch] = useSearchParams()
  const [path, setPath] = useState(question?.path ?? '/v1/chat/completions')
  const [model, setModel] = useState(question?.model ?? '')
  const [key, setKey] = useState(question?.key ?? null)
  const models = useApiQuery('GET /models', {}).data?.models ?? []
  const keys = useApiQuery('GET /keys', {}).data?.keys ?? []
  const activeKeys = keys.filter(({ state }) => state === 'live').map(({ name }) => name)
  const names = [...new Set([...activeKeys, ...key === null ? [] : [key]])]
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const next = {
      path: path.trim(), ...model.trim() !== '' && { model: model.trim() }, ...key !== null && { key },
    }
    if (JSON.stringify(next) === JSON.stringify(question)) void explanation.refetch()
    else setSearch(next)
  }
  const { error } = explanation
  const field = error instanceof ApiError ? error.field : null
  return (
    <Section title="Explain a request" about="Shows the route and targets of a request, without sending it.">
      <form onSubmit={submit} className={classes.form}>
        <Autocomplete label="Path" data={PATHS} value={path} onChange={setPath} required
          maxDropdownHeight={280}
          error={field === 'path' && error?.message} spellCheck={false} />
        <Autocomplete label="Model" data={[...new Set(models.map(({ name }) => name))]} value={model}
          onChange={setModel}
          placeholder="None" maxDropdownHeight={280} spellCheck={false} />
        <Select label="Key" data={names} value={key} onChange={setKey} placeholder="Any" searchable clearable
          clearButtonProps={{ 'aria-label': 'Any key' }} error={field === 'key' && error?.message} />
        <Button type="submit" loading={explanation.isFetching}>Explain</Button>
      </form>
      {question !== null && (
        <div className={classes.result} aria-live="polite">
          {explanation.data ? <ExplanationView explanation={explanation.data} />
            : error ? (field === null && <Problem error={error} />) : <Loading height={120} />}
        </div>
      )}
    </Section>
  )
}

function ExplanationView({ explanation }: { readonly explanation: Explanation }) {
  const { endpoint, protocol, model, own, refusal, steps, candidates } = explanation
  const matched = steps.find(({ takes }) => takes)
  return (
    <>
      <p className={classes.verdict}>
        {own ? <><StatusBadge tone="accent">Gateway</StatusBadge> The gateway responds itself. No route is used.</>
          : refusal !== null
            ? <>
                <StatusBadge tone="bad">{`${refusal.status} ${refusal.code}`}</StatusBadge>
                {' '}Refused: {refusal.message}.
              </>
            : <><StatusBadge tone="good">Forwarded</StatusBadge> <strong>routes[{matched?.index}]</strong> matches
              (line {matched?.line}).</>}
      </p>
      <p className="dim">
        Endpoint: {endpoint}{protocol !== null && ` (${protocol})`}. Model: {model === null ? 'none'
          : <code>{model}</code>}
      </p>
      {steps.length > 0 && <Steps steps={steps} />}
      {candidates.length > 0 && refusal === null && (
        <ol className={classes.candidates}>
          {candidates.map((candidate, n) => (
            <li key={`${candidate.upstream} ${candidate.model}`}>
              <Candidate candidate={candidate}
                title={candidates.length > 1 ? `Target ${n + 1} of ${candidates.length}` : 'Target'} />
            </li>
          ))}
        </ol>
      )}
    </>
  )
}

/** The routes in order, up to the first route that matches. */
function Steps({ steps }: { readonly steps: Explanation['steps'] }) {
  return (
    <ol className={classes.steps}>
      {steps.map(({ index, line, takes, why }) => (
        <li key={index} data-matches={takes || undefined}>
          {takes ? <IconCheck size={16} stroke={2.2} aria-hidden />
            : <IconX size={16} stroke={1.8} aria-hidden />}
          <span><strong>routes[{index}]</strong> <span className="dim">line {line}:</span> {why}</span>
        </li>
      ))}
    </ol>
  )
}

function Candidate({ candidate: { upstream, model, url, headers, translation, counted_here: isCountedHere }, title }: {
  readonly candidate: Explanation['candidates'][number]
  readonly title: string
}) {
  return (
    <div className={classes.candidate}>
      <h3>{title}: <NameLabel kind="upstream" name={upstream} /></h3>
      {isCountedHere && <p>The gateway counts the tokens itself.</p>}
      <p className={classes.url}><code>{url}</code></p>
      <p>Model: {model === null ? 'none' : <code>{model}</code>}</p>
      {translation !== null && <Translation translation={translation} />}
      {headers.length > 0 && (
        <details>
          <summary>{counted(headers.length, 'header')} set by the gateway</summary>
          <dl className={classes.headers}>
            {headers.map(({ name, value }, n) => (
              <div key={`${name} ${headers.slice(0, n).filter(other => other.name === name).length}`}>
                <dt>{name}</dt><dd>{value}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </div>
  )
}

function Translation({ translation: { from, to, dropped, refused, refusal } }: {
  readonly translation: NonNullable<Explanation['candidates'][number]['translation']>
}) {
  if (refusal !== null) return <p>Refused: {refusal}.</p>
  return (
    <>
      <p>Translated from {from} to {to}.</p>
      {dropped.length > 0 && <p>Fields dropped: {dropped.join(', ')}.</p>}
      {refused.length > 0 && <p>Fields refused: {refused.join(', ')}.</p>}
    </>
  )
}
