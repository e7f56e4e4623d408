import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'

/** Browser features that the console does not use. */
const PERMISSIONS = [
  'accelerometer', 'camera', 'display-capture', 'geolocation', 'gyroscope', 'microphone', 'midi', 'payment',
  'publickey-credentials-get', 'screen-wake-lock', 'usb', 'xr-spatial-tracking',
].map(feature => `${feature}=()`).join(', ')

/** For a year, a browser that has used TLS once uses only TLS. */
const HSTS = 'max-age=31536000'

/** `styleSrc` needs no exception: scripts set styles through CSSOM, which is not inline. @param isSecure did the request come over TLS? */
export async function secureHeaders(app: FastifyInstance, isSecure: (request: object) => boolean): Promise<void> {
  await app.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"], scriptSrc: ["'self'"], styleSrc: ["'self'"], imgSrc: ["'self'"], fontSrc: ["'self'"],
        connectSrc: ["'self'"], manifestSrc: ["'self'"], frameAncestors: ["'none'"], baseUri: ["'none'"], formAction: ["'self'"],
      },
    },
    referrerPolicy: { policy: 'no-referrer' },
    xFrameOptions: { action: 'deny' },
    strictTransportSecurity: false,
  })
  app.addHook('onRequest', async (request, reply) => {
    void reply.header('permissions-policy', PERMISSIONS)
    if (isSecure(request)) void reply.header('strict-transport-security', HSTS)
  })
}
