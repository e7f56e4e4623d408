/** One line of a scrape. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Scrapes /metrics. @param url of the listener */
export async function scrape(url: string): Promise<Sample[]> {
  const response = await fetch(`${url}/metrics`)
  return samplesOf(await response.text())
}

export function samplesOf(text: string): Sample[] {
  return text.split('\n').filter(line => line !== '' && !line.startsWith('#')).map(line => {
    const [, name = '', labels = '', value = ''] = /^([^{ ]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    const pairs = labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)
    return { name, labels: Object.fromEntries(Array.from(pairs, ([, label, text]) => [label, text])), value: Number(value) }
  })
}

/** The sum of all series of that name that have these labels. */
export function sum(samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>> = {}): number {
  return samples
    .filter(sample => sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
    .reduce((total, { value }) => total + value, 0)
}
