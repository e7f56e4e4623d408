import { Button } from '@mantine/core'
import { IconEye } from '@tabler/icons-react'
import { useState } from 'react'
import type { Body, Bodies as Kept } from '../../../../api/bodies.ts'
import { useApiQuery } from '../../ask.ts'
import { CodeBlock } from '../../components/code-block.tsx'
import { Copy } from '../../components/copy.tsx'
import { Columns, Section, Stack } from '../../components/page.tsx'
import { Failure, Loading } from '../../components/states.tsx'
import { bytes, timeUtc } from '../../format.ts'
import { useUser } from '../../session.ts'
import classes from './story.module.css'

/** What log.bodies has kept of a request: prompts, that nobody is shown who does not ask. */
export function Bodies({ id }: { readonly id: string }) {
  const [isOpen, setOpen] = useState(false)
  const { role } = useUser()
  if (isOpen) return <Opened id={id} />
  return (
    <Section title="Bodies"
      about={role === 'key' ? undefined : 'That you looked at them is written into the audit list.'}
      actions={
        <Button variant="default" size="xs" leftSection={<IconEye size={16} stroke={1.6} aria-hidden />}
          onClick={() => setOpen(true)}>
          Show request and answer
        </Button>
      }>
      <p>The request and its answer are kept, because the configuration says so for this key.</p>
    </Section>
  )
}

function Opened({ id }: { readonly id: string }) {
  const answer = useApiQuery('GET /logs/:id/bodies', { params: { id } })
  if (answer.data !== undefined && !answer.isPlaceholderData) {
    return <Stack>{answer.data.transcripts.map(
      each => <Transcript key={each.started_at} transcript={each} />,
    )}</Stack>
  }
  return answer.isError
    ? <Failure error={answer.error} retry={() => { void answer.refetch() }} />
    : <Loading height={320} />
}

function Transcript(
  { transcript: { request, answer, expires_at } }: { readonly transcript: Kept['transcripts'][number] },
) {
  const about = `Kept until ${timeUtc(expires_at)} UTC`
  return (
    <Columns least={24}>
      <Section title="Request" about={about} actions={<Copy value={request.content} what="request" />}>
        <Shown body={request} label="Body of the request" />
      </Section>
      <Section title="Answer" about={about} actions={<Copy value={answer.content} what="answer" />}>
        <Shown body={answer} label="Body of the answer" />
      </Section>
    </Columns>
  )
}

function Shown({ body, label }: { readonly body: Body; readonly label: string }) {
  const { content_type, bytes: size, is_cut, coding } = body
  const facts = [
    content_type ?? 'no content type', bytes(size), ...is_cut ? ['the beginning is kept'] : [],
    ...coding === 'base64' ? ['in base64'] : [],
  ]
  return (
    <>
      <p className={classes.sure}>{facts.join(', ')}</p>
      <CodeBlock label={label} form="bounded">{readable(body)}</CodeBlock>
    </>
  )
}

/** Whole JSON in lines; everything else as it is. */
function readable({ content, content_type, is_cut, coding }: Body): string {
  if (is_cut || coding !== 'text' || content_type?.includes('json') !== true) return content
  try {
    return JSON.stringify(JSON.parse(content), null, 2)
  } catch {
    return content
  }
}
