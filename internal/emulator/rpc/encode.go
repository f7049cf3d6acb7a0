package rpc

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// Format is the encoding of an answer.
type Format string

// The two encodings.
const (
	JSON Format = "JSON"
	XML  Format = "XML"
)

// Answer is an encoded response.
type Answer struct {
	Status int
	Format Format
	Body   []byte
}

// Success encodes the result of an action, with the request id in front. A nil result is an answer of the id alone.
func Success(action, requestID string, f Format, result any) (Answer, error) {
	a := Answer{Status: http.StatusOK, Format: f}
	if f == XML {
		var b bytes.Buffer
		b.WriteString(xml.Header)
		fmt.Fprintf(&b, "<%sResponse><RequestId>%s</RequestId>", action, requestID)
		if result != nil {
			writeFields(&b, reflect.ValueOf(result))
		}
		fmt.Fprintf(&b, "</%sResponse>", action)
		a.Body = b.Bytes()
		return a, nil
	}
	body := []byte("{}")
	if result != nil {
		var err error
		if body, err = json.Marshal(result); err != nil {
			return Answer{}, fmt.Errorf("encode the result of %s: %w", action, err)
		}
	}
	a.Body = append(a.Body, `{"RequestId":"`+requestID+`"`...)
	if len(body) > 2 {
		a.Body = append(a.Body, ',')
	}
	a.Body = append(a.Body, body[1:]...)
	return a, nil
}

// Failure encodes an error in the cloud's form.
func Failure(e *api.Error, requestID, hostID string, f Format) Answer {
	body := struct{ RequestId, HostId, Code, Message, Recommend string }{ //nolint:revive // names on the wire
		requestID, hostID, e.Code, e.Message, "https://api.aliyun.com/troubleshoot?q=" + e.Code,
	}
	a := Answer{Status: e.Status, Format: f}
	if f == XML {
		var b bytes.Buffer
		b.WriteString(xml.Header + "<Error>")
		writeFields(&b, reflect.ValueOf(body))
		b.WriteString("</Error>")
		a.Body = b.Bytes()
		return a
	}
	// A struct of five strings always encodes.
	a.Body, _ = json.Marshal(body)
	return a
}

// Write sends the answer.
func (a Answer) Write(w http.ResponseWriter) {
	contentType := "application/json;charset=utf-8"
	if a.Format == XML {
		contentType = "text/xml;charset=utf-8"
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	// The client is gone when this fails; nobody is left to report it to.
	_, _ = w.Write(a.Body)
}
