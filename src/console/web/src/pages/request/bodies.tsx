import { Button } from '@mantine/core'
import { IconEye } from '@tabler/icons-react'
import { useState } from 'react'
import type { Body, Bodies as StoredBodies } from '../../../../api/bodies.ts'
import { useApiQuery } from '../../api-hooks.ts'
import { CodeBlock } from '../../components/code-block.tsx'
import { Copy } from '../../components/copy.tsx'
import { Columns, Section, Stack } from '../../components/page/page.tsx'
import { LoadError, Loading } from '../../components/page/states.tsx'
import { bytes, timeUtc } from '../../format.ts'
import { useUser } from '../../session.ts'
import classes from './request.module.css'

/** The bodies that log.bodies keeps. They are loaded only when the user asks for them, because they contain prompts. */
export function Bodies({ id }: { readonly id: string }) {
  const [isOpen, setOpen] = useState(false)
  const { role } = useUser()
  if (isOpen) return <LoadedBodies id={id} />
  return (
    <Section title="Bodies"
      about={role === 'key' ? undefined : 'Viewing the bodies creates an audit event.'}
      actions={
        <Button variant="default" size="xs" leftSection={<IconEye size={16} stroke={1.6} aria-hidden />}
          onClick={() => setOpen(true)}>
          Show request and response
        </Button>
      }>
      <p>The request and response bodies are stored, because log.bodies is on for this key.</p>
    </Section>
  )
}

function LoadedBodies({ id }: { readonly id: string }) {
  const query = useApiQuery('GET /logs/:id/bodies', { params: { id } })
  if (query.data !== undefined && !query.isPlaceholderData) {
    return <Stack>{query.data.transcripts.map(
      each => <Transcript key={each.started_at} transcript={each} />,
    )}</Stack>
  }
  return query.isError
    ? <LoadError error={query.error} retry={() => { void query.refetch() }} />
    : <Loading height={320} />
}

function Transcript({ transcript }: { readonly transcript: StoredBodies['transcripts'][number] }) {
  const { request, answer: response, expires_at } = transcript
  const about = `Stored until ${timeUtc(expires_at)} UTC`
  return (
    <Columns least={24}>
      <Section title="Request" about={about} actions={<Copy value={request.content} what="request" />}>
        <BodyView body={request} label="Request body" />
      </Section>
      <Section title="Response" about={about} actions={<Copy value={response.content} what="response" />}>
        <BodyView body={response} label="Response body" />
      </Section>
    </Columns>
  )
}

function BodyView({ body, label }: { readonly body: Body; readonly label: string }) {
  const { content_type, bytes: size, is_cut, coding } = body
  const facts = [
    content_type ?? 'no content type', bytes(size), ...is_cut ? ['truncated'] : [],
    ...coding === 'base64' ? ['base64'] : [],
  ]
  return (
    <>
      <p className={classes.note}>{facts.join(', ')}</p>
      <CodeBlock label={label} form="bounded">{readable(body)}</CodeBlock>
    </>
  )
}

/** The body as text. Complete JSON is indented; any other body stays unchanged. */
function readable({ content, content_type, is_cut, coding }: Body): string {
  if (is_cut || coding !== 'text' || content_type?.includes('json') !== true) return content
  try {
    return JSON.stringify(JSON.parse(content), null, 2)
  } catch {
    return content // not JSON, although the content type says so
  }
}
