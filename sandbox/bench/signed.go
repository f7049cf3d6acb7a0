package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// signedCalls is how many calls are signed before they are sent: more than the fastest machine answers in [floodTime].
const signedCalls = 200_000

// floodSigned sends calls that are signed before, by a client that does no more than to read each answer to its end, and returns how many a
// second were answered.
func floodSigned(ctx context.Context, c *caller, params func(i int) api.Params) (float64, error) {
	address := strings.TrimPrefix(c.url, "http://")
	requests := make([][]byte, signedCalls)
	for i := range requests {
		body := c.sign(params(i))
		requests[i] = fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", address, len(body), body)
	}
	var answered atomic.Int64
	begin := time.Now()
	workers, ctx := errgroup.WithContext(ctx)
	for worker := range connections {
		workers.Go(func() (err error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				return fmt.Errorf("connect to the emulator: %w", err)
			}
			defer func() { err = errors.Join(err, conn.Close()) }()
			reader := bufio.NewReader(conn)
			for i := worker; i < len(requests) && time.Since(begin) < floodTime; i += connections {
				if _, err := conn.Write(requests[i]); err != nil {
					return fmt.Errorf("send a call: %w", err)
				}
				if err := readAnswer(reader); err != nil {
					return err
				}
				answered.Add(1)
			}
			return nil
		})
	}
	err := workers.Wait()
	return float64(answered.Load()) / time.Since(begin).Seconds(), err
}

// errAnswer is an answer that is no success.
var errAnswer = errors.New("answer")

// readAnswer reads one answer with a length, which must be a success.
func readAnswer(reader *bufio.Reader) error {
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	failed := ""
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		failed = string(line)
	}
	length := 0
	for {
		if line, err = reader.ReadSlice('\n'); err != nil {
			return fmt.Errorf("read an answer: %w", err)
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return fmt.Errorf("read an answer: %w", err)
			}
		}
	}
	if _, err := reader.Discard(length); err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	if failed != "" {
		return fmt.Errorf("%w %s", errAnswer, failed)
	}
	return nil
}
