import { reachableOrigin, type PageLocation } from '../../reachable-origin.ts'

/**
 * Base URL for the code samples.
 *
 * @param configuredUrl - URL of the listening address in the configuration; null = not known
 * @param here - location of the console, which accepts the same requests
 * @returns a URL without a trailing slash
 */
export function baseUrlFor(configuredUrl: string | null, here: PageLocation): string {
  return reachableOrigin(configuredUrl, here) ?? here.origin
}
