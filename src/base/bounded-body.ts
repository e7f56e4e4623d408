/** @param body of a response of `fetch` @returns the whole body; null = it is longer than `maxBytes`, and the rest is not read */
export async function boundedBody(body: Response['body'], maxBytes: number): Promise<Buffer<ArrayBuffer> | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop cancels the rest of the body.
  for await (const chunk of body ?? []) {
    size += chunk.length
    if (size > maxBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
