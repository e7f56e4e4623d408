import { deepFreeze } from '../freeze.ts'
import type { LoadedConfig } from './load.ts'
import type { Problem } from '../problem.ts'
import type { Config, Route, Target, Upstream } from '../types.ts'

/**
 * URLs are sent separately, because a URL cannot be sent between threads. A Buffer arrives as a Uint8Array, and an object without a
 * prototype arrives with one.
 */
export type LoadMessage =
  | { readonly loaded: LoadedConfig; /** By upstream name. */ readonly urls: Urls }
  | { readonly problems: readonly Problem[]; readonly files: readonly string[]; readonly text: string | null }

type Urls = ReadonlyMap<string, string>

/** Converts a configuration to a message that another thread can receive. */
export function serializeConfig(loaded: LoadedConfig): LoadMessage {
  const upstreams = [...loaded.config.upstreams.values()]
  const urls = new Map(upstreams.flatMap(({ name, url }) => (url ? [[name, url.href]] : [])))
  return { loaded: { ...loaded, config: withUrls(loaded.config, () => null) }, urls }
}

/** Converts a message back to a configuration, and freezes the configuration again. */
export function deserializeConfig(loaded: LoadedConfig, urls: Urls): LoadedConfig {
  const config = withUrls(loaded.config, ({ name }) => {
    const url = urls.get(name)
    return url === undefined ? null : new URL(url)
  })
  const keys = config.keys.map(key => ({ ...key, digest: Buffer.from(key.digest) }))
  return deepFreeze({ ...loaded, config: { ...config, keys } })
}

/** Replaces the URLs of upstreams. The routes refer to the same new upstream objects as the table. */
function withUrls(config: Config, urlOf: (upstream: Upstream) => URL | null): Config {
  const upstreams = new Map(Array.from(config.upstreams, ([name, upstream]) => {
    const headers = Object.assign(Object.create(null), upstream.headers)
    return [name, { ...upstream, url: urlOf(upstream), headers }]
  }))
  const moved = (target: Target): Target => {
    const upstream = upstreams.get(target.upstream.name)
    if (upstream === undefined) throw new Error(`a route's upstream ${target.upstream.name} is none`)
    return { ...target, upstream }
  }
  const routes = config.routes.map((route): Route => {
    const { contextLength, contentFilter } = route.on
    return {
      ...route,
      targets: route.targets.map(moved),
      on: { contextLength: contextLength && moved(contextLength), contentFilter: contentFilter && moved(contentFilter) },
    }
  })
  return { ...config, upstreams, routes }
}
