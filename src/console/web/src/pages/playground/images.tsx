import { Button, FileButton } from '@mantine/core'
import { IconPhotoPlus } from '@tabler/icons-react'
import { useState } from 'react'
import { bytes } from '../../format.ts'
import type { Image } from './prompt.ts'
import classes from './playground.module.css'

/** Media types that all vendors accept. */
const MEDIA_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']
const MAX_IMAGES = 4
const MAX_BYTES = 4 * 1024 * 1024

export interface ImagesProps {
  readonly images: readonly Image[]
  readonly change: (images: readonly Image[]) => void
}

/** Images to send with the prompt. */
export function Images({ images, change }: ImagesProps) {
  const [problem, setProblem] = useState<string | null>(null)
  const add = async (files: readonly File[]) => {
    const problems = files.flatMap(file => problemOf(file) ?? [])
    const read = await Promise.all(files.filter(file => problemOf(file) === null).map(readImage))
    const all = [...images, ...read]
    setProblem([...problems, ...all.length > MAX_IMAGES ? [`Only ${MAX_IMAGES} images can be sent.`] : []].join(' ') || null)
    change(all.slice(0, MAX_IMAGES))
  }
  return (
    <div>
      <FileButton accept={MEDIA_TYPES.join()} multiple onChange={files => { void add(files) }}
        inputProps={{ 'aria-label': 'Image files' }}>
        {props => (
          <Button {...props} variant="default" size="sm" leftSection={<IconPhotoPlus size={16} aria-hidden />}>Add images</Button>
        )}
      </FileButton>
      <p className={classes.note}>{MAX_IMAGES} at most, each up to {bytes(MAX_BYTES)}: PNG, JPEG, GIF or WebP.</p>
      <output>{problem !== null && <p className={classes.problem}>{problem}</p>}</output>
      {images.length > 0 && (
        <ul className={classes.images} aria-label="Images">
          {images.map(({ name, data }, index) => (
            // oxlint-disable-next-line react/no-array-index-key -- two files can have the same name
            <li key={`${index} ${name}`}>
              <span>{name} <span className="dim">{bytes(Math.floor(data.length * 0.75))}</span></span>
              <Button variant="subtle" size="compact-xs" onClick={() => { change(images.filter((_, at) => at !== index)) }}>
                Remove<span className="unseen"> {name}</span>
              </Button>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

function problemOf({ name, type, size }: File): string | null {
  if (!MEDIA_TYPES.includes(type)) return `${name} is not a PNG, JPEG, GIF or WebP image.`
  return size > MAX_BYTES ? `${name} is larger than ${bytes(MAX_BYTES)}.` : null
}

async function readImage(file: File): Promise<Image> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const reader = new FileReader()
  reader.addEventListener('load', () => { resolve(String(reader.result)) })
  reader.addEventListener('error', () => { reject(new Error(`${file.name} cannot be read.`)) })
  reader.readAsDataURL(file)
  const url = await promise
  return { name: file.name, mediaType: file.type, data: url.slice(url.indexOf(',') + 1) }
}
