// A real OpenID provider: client credentials, tokens as JWT, keys at its own place.
// Prints {"issuer": …} when it is ready; ends when its standard input does.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';
import { exportJWK, generateKeyPair } from 'jose';

const secretKey = async (alg) => {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: alg, alg, use: 'sig' };
};

let answer = (_, response) => response.writeHead(503).end();
const server = createServer((request, response) => answer(request, response));
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: ['RS256', 'ES256'].map((alg) => ({
    client_id: `platform-${alg}`,
    client_secret: 'a secret of the test',
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
  })),
  jwks: { keys: [await secretKey('RS256'), await secretKey('ES256')] },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => 'urn:sutler',
      getResourceServerInfo: (_, __, client) => ({
        scope: 'broker:use broker:look',
        audience: 'sutler',
        accessTokenFormat: 'jwt',
        accessTokenTTL: 300,
        jwt: { sign: { alg: client.clientId.split('-')[1] } },
      }),
    },
  },
});
answer = provider.callback();
console.log(JSON.stringify({ issuer }));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
